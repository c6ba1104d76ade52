--! Previous: sha1:48cac30d3472aeeca777d7443485db80d59572c4
--! Hash: sha1:331747ad373909053e82932185482784c3c26cd0
--! Message: providers for clients of Supabase Auth

-- Sign-in through providers for clients of Supabase Auth: they may return from a provider in any browser, as there; with PKCE only the
-- client that began can use the result.
alter table auth.federation_states
  drop constraint federation_states_mode_check,
  add constraint federation_states_mode_check check (mode in ('session', 'token', 'code', 'fragment'));
comment on column auth.federation_states.mode is
  'What is opened: a session, or a pair of tokens; for clients of Supabase Auth by a code (PKCE), or in the fragment of the redirect.';
--! Included auth/end_federation.sql
create or replace function auth.end_federation(state_hash bytea, browser_hash bytea, provider text, purpose text)
returns setof auth.federation_states as $$
begin
  return query
    delete from auth.federation_states as state
      where state.state_hash = end_federation.state_hash
        and (state.browser_hash = end_federation.browser_hash or state.mode in ('code', 'fragment'))
        and state.provider = end_federation.provider and state.purpose = end_federation.purpose
        and state.expires_at > now()
      returning state.*;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_federation is
  'Deletes and returns the state of a browser that comes back from a provider. No row for a second use.';
--! EndIncluded auth/end_federation.sql
--! Included auth/unlink_identity.sql
-- The id is the one of auth.user_identities. A password counts as an identity, as the one of provider email does there.
create or replace function auth.unlink_identity(user_id bigint, identity_id uuid, client_info auth.client_info) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(unlink_identity.user_id);
  v_identity auth.identities;
  v_provider text;
begin
  select identities.* into v_identity from auth.identities
    where identities.user_id = v_account.user_id
      and md5(identities.issuer || ' ' || identities.subject)::uuid = unlink_identity.identity_id;
  if not found then
    return 'absent';
  end if;
  select providers.name into v_provider from auth.providers where providers.issuer = v_identity.issuer;
  if v_account.password_hash is null and not exists (
    select from auth.identities join auth.providers on providers.issuer = identities.issuer
    where identities.user_id = v_account.user_id and providers.enabled
      and (identities.issuer, identities.subject) <> (v_identity.issuer, v_identity.subject)
  ) then
    return 'last';
  end if;
  delete from auth.identities
    where identities.issuer = v_identity.issuer and identities.subject = v_identity.subject;
  -- A link that is in progress would be completed after this.
  delete from auth.federation_states as state where state.user_id = v_account.user_id and state.provider = v_provider;
  perform auth.log_event(
    'identity.unlinked', v_account.user_id, client_info, jsonb_build_object('provider', v_provider)
  );
  return 'unlinked';
end;
$$ language plpgsql set search_path = '';
comment on function auth.unlink_identity is
  'Removes one identity of a user: unlinked; absent: it is not the user''s; last: the user could not sign in then.';
--! EndIncluded auth/unlink_identity.sql
