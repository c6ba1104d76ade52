create or replace function auth.fail_login(counted_name text, user_id bigint, reason text, client_info auth.client_info)
returns void as $$
begin
  perform auth.end_attempt(counted_name, client_info.address, 'failed');
  perform auth.log_event('login.failed', user_id, client_info, jsonb_build_object('reason', reason));
end;
$$ language plpgsql set search_path = '';
comment on function auth.fail_login is
  'Records a failed attempt. The log does not contain the name: people type passwords there.';
