create or replace function auth.change_password(
  user_id bigint, new_hash text, client_info auth.client_info, kept_session uuid default null
) returns void as $$
begin
  perform auth.set_password(change_password.user_id, new_hash, kept_session);
  perform auth.log_event('password.changed', change_password.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_password is
  'Sets the password of a user who may do that in this transaction, and ends the user''s other sign-ins.';
