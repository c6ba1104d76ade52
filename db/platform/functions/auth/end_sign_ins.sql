create or replace function auth.end_sign_ins(user_id bigint, kept_session uuid default null) returns void as $$
begin
  perform auth.end_access_tokens(end_sign_ins.user_id);
  delete from auth.sessions where sessions.user_id = end_sign_ins.user_id;
  update auth.refresh_tokens as token set revoked_at = now()
    where token.user_id = end_sign_ins.user_id and token.revoked_at is null and token.family_id is distinct from kept_session;
  update auth.token_sessions as session set kept_at = account.tokens_valid_from
    from auth.users as account
    where session.id = kept_session and session.user_id = end_sign_ins.user_id and account.user_id = session.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_sign_ins is
  'Ends all sign-ins of the user, except one by tokens. The caller has locked the account.';
