-- What was sent to the previous address ends.
create or replace function auth.set_confirmed_email(user_id bigint, email text, client_info auth.client_info) returns void as $$
begin
  perform auth.set_email(set_confirmed_email.user_id, set_confirmed_email.email);
  update auth.users as account set verified_email = set_confirmed_email.email, is_anonymous = false
    where account.user_id = set_confirmed_email.user_id;
  delete from auth.mail_tokens as token where token.user_id = set_confirmed_email.user_id;
  perform auth.log_event('email.changed', set_confirmed_email.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_confirmed_email is 'Changes the address, which counts as proved. The caller has locked the account.';
