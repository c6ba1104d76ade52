create or replace function auth.end_sign_ins(user_id bigint) returns void as $$
begin
  perform auth.end_access_tokens(end_sign_ins.user_id);
  delete from auth.sessions where sessions.user_id = end_sign_ins.user_id;
  update auth.refresh_tokens set revoked_at = now()
    where refresh_tokens.user_id = end_sign_ins.user_id and revoked_at is null;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_sign_ins is 'Ends all sign-ins of the user. The caller has locked the account.';
