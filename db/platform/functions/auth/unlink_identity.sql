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
