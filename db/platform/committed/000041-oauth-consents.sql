--! Previous: sha1:9c5e1a4560bdbfc0722771c23d3e90181d091636
--! Hash: sha1:66d438b6c03c424fb612ee74063dc87c17fac437
--! Message: oauth consents

-- A sign-in of an application ends when the consent ends that it began with: a later consent, which may be to less, does not prolong it.
alter table auth.oauth_sessions add column expires_at timestamptz;
update auth.oauth_sessions as held set expires_at = granted.expires_at from auth.oauth_grants as granted where granted.id = held.grant_id;
comment on column auth.oauth_sessions.expires_at is 'When the consent ends that the sign-in began with.';

create or replace function auth.exchange_oauth_code(
  code_hash bytea, client_id text, redirect_uri text, challenge text, token_hash bytea, client_info auth.client_info,
  out outcome text, out claims jsonb, out session auth.oauth_sessions, out expires_at timestamptz, out nonce text, out signed_in_at timestamptz
) as $$
declare
  v_request auth.oauth_authorizations;
  v_grant auth.oauth_grants;
  v_account auth.users;
begin
  select request.user_id into v_account.user_id
    from auth.oauth_authorizations as request where request.code_hash = exchange_oauth_code.code_hash;
  v_account := auth.lock_account(v_account.user_id);
  select * into v_request
    from auth.oauth_authorizations as request where request.code_hash = exchange_oauth_code.code_hash for update;
  select * into v_grant from auth.oauth_grants as granted
    where granted.user_id = v_request.user_id and granted.client_id = v_request.client_id and granted.expires_at > clock_timestamp();
  outcome := case
    when v_request.id is null or v_request.client_id <> exchange_oauth_code.client_id or v_account.user_id is null then 'absent'
    when v_request.used_at is not null then 'reused'
    when v_request.expires_at <= clock_timestamp() or v_grant.id is null or auth.is_disabled(v_account) then 'ended'
    when v_request.redirect_uri is distinct from exchange_oauth_code.redirect_uri then 'redirect'
    when v_request.challenge is distinct from exchange_oauth_code.challenge then 'verifier'
    else 'passed'
  end;
  if outcome = 'reused' then
    perform auth.end_oauth_sessions(array[v_request.session_id]);
    perform auth.log_event('oauth.code_reused', v_account.user_id, client_info, jsonb_build_object('client', v_request.client_id));
  elsif outcome = 'passed' then
    expires_at := v_grant.expires_at;
    claims := auth.open_tokens(
      v_account.user_id, exchange_oauth_code.token_hash, greatest(1, extract(epoch from expires_at - clock_timestamp()))::integer,
      client_info, array['oauth_provider/authorization_code'], case when auth.has_factor(v_account.user_id) then 2 else 1 end::smallint, true
    );
    insert into auth.oauth_sessions (session_id, grant_id, scopes, resource, expires_at)
      values ((claims ->> 'session_id')::uuid, v_grant.id, v_request.scopes, v_request.resource, v_grant.expires_at) returning * into session;
    perform auth.end_oauth_sessions(array(
      select held.session_id from auth.oauth_sessions as held join auth.token_sessions as kept on kept.id = held.session_id
      where held.grant_id = v_grant.id order by kept.refreshed_at desc offset content_service.bound('sign-ins of a grant')
    ));
    update auth.oauth_authorizations as used set used_at = clock_timestamp(), session_id = session.session_id where used.id = v_request.id;
    nonce := v_request.nonce;
    signed_in_at := v_request.signed_in_at;
  end if;
end;
$$ language plpgsql set search_path = '';

create or replace function auth.refresh_oauth_tokens(
  token_hash bytea, next_hash bytea, client_id text, client_info auth.client_info,
  out outcome text, out claims jsonb, out session auth.oauth_sessions, out expires_at timestamptz
) as $$
begin
  select held.session_id, held.grant_id, held.scopes, held.resource, held.expires_at, least(held.expires_at, granted.expires_at)
    into session.session_id, session.grant_id, session.scopes, session.resource, session.expires_at, expires_at
    from auth.refresh_tokens as token
    join auth.oauth_sessions as held on held.session_id = token.family_id
    join auth.oauth_grants as granted on granted.id = held.grant_id
    where token.token_hash = refresh_oauth_tokens.token_hash and granted.client_id = refresh_oauth_tokens.client_id;
  if not found or expires_at <= clock_timestamp() then
    outcome := 'ended';
    return;
  end if;
  select rotated.outcome, rotated.claims into refresh_oauth_tokens.outcome, refresh_oauth_tokens.claims
    from auth.rotate_refresh_token(
      refresh_oauth_tokens.token_hash, next_hash, greatest(1, extract(epoch from expires_at - clock_timestamp()))::integer, null, client_info
    ) as rotated;
end;
$$ language plpgsql set search_path = '';

create or replace function auth.find_oauth_session(client_id text, token_hash bytea, session_id uuid)
returns table (session auth.oauth_sessions, user_id bigint, issued_at timestamptz, expires_at timestamptz)
language sql stable
begin atomic
  select held, granted.user_id, token.issued_at, least(token.expires_at, held.expires_at, granted.expires_at)
  from auth.oauth_sessions as held
  join auth.oauth_grants as granted on granted.id = held.grant_id
  join auth.refresh_tokens as token on token.family_id = held.session_id
  join auth.users as account on account.user_id = granted.user_id
  where granted.client_id = find_oauth_session.client_id and least(held.expires_at, granted.expires_at) > now() and not auth.is_disabled(account)
    and token.rotated_at is null and token.revoked_at is null and token.expires_at > now()
    and (token.token_hash = find_oauth_session.token_hash or held.session_id = find_oauth_session.session_id)
  limit 1;
end;

-- The body is a text, because Postgres accepts no new column of a table whose row type a parsed body uses.
create or replace function auth.list_oauth_grants(user_id bigint)
returns table (granted auth.oauth_grants, client auth.oauth_clients, last_used_at timestamptz) as $$
  select jsonb_populate_record(granted, jsonb_build_object('scopes', granted.scopes || array(
    select distinct scope from auth.oauth_sessions as held cross join unnest(held.scopes) as scope
    where held.grant_id = granted.id and held.expires_at > now() and scope <> all (granted.scopes) and exists (
      select from auth.refresh_tokens as token
      where token.family_id = held.session_id and token.rotated_at is null and token.revoked_at is null and token.expires_at > now()
    ) order by scope
  ))), client, (
    select max(used.refreshed_at) from auth.oauth_sessions as held
    join auth.token_sessions as used on used.id = held.session_id where held.grant_id = granted.id
  )
  from auth.oauth_grants as granted join auth.oauth_clients as client on client.id = granted.client_id
  where granted.user_id = list_oauth_grants.user_id and granted.expires_at > now()
  order by granted.granted_at desc
$$ language sql stable set search_path = '';
comment on function auth.list_oauth_grants is 'What a user has granted to applications, with the scopes of sign-ins that began with earlier consents.';
