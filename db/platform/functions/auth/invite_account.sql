create or replace function auth.invite_account(user_id bigint, client_info auth.client_info) returns void as $$
begin
  perform auth.lock_account(invite_account.user_id);
  update auth.users as account set invited_at = clock_timestamp() where account.user_id = invite_account.user_id;
  perform auth.log_event('account.invited', invite_account.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.invite_account is 'Records that an administrator invites the user.';
