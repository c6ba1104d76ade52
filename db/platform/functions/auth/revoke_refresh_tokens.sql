create or replace function auth.revoke_refresh_tokens(user_id bigint, client_info auth.client_info) returns void as $$
begin
  perform auth.lock_account(revoke_refresh_tokens.user_id);
  update auth.refresh_tokens set revoked_at = now()
    where refresh_tokens.user_id = revoke_refresh_tokens.user_id and revoked_at is null;
  perform auth.log_event('refresh_tokens.revoked', revoke_refresh_tokens.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.revoke_refresh_tokens is 'Ends all sign-ins of the user by tokens.';
