create or replace function auth.open_tokens(
  user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info,
  methods text[] default '{}', aal smallint default 1, is_complete boolean default false
) returns jsonb as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_session_id constant uuid := gen_random_uuid();
begin
  perform auth.log_event('refresh_token.created', open_tokens.user_id, client_info);
  insert into auth.token_sessions (id, user_id, created_at, aal, amr, requires_factor)
    values (v_session_id, open_tokens.user_id, v_now, open_tokens.aal, (
      select coalesce(jsonb_agg(auth.amr_entry(method, v_now)), '[]') from unnest(open_tokens.methods) as method
    ), open_tokens.aal < 2 and not is_complete and auth.has_factor(open_tokens.user_id));
  update auth.users as account set last_sign_in_at = v_now where account.user_id = open_tokens.user_id;
  return auth.add_refresh_token(open_tokens.user_id, open_tokens.token_hash, v_session_id, seconds, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_tokens is
  'Starts a sign-in by tokens and returns the claims of its first access token. The caller has locked the account.';
