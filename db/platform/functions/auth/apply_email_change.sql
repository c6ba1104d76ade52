-- Both sides have confirmed it. What was sent to the previous address ends.
create or replace function auth.apply_email_change(user_id bigint, new_email text, client_info auth.client_info) returns void as $$
begin
  perform auth.set_email(apply_email_change.user_id, apply_email_change.new_email);
  update auth.users as account set verified_email = apply_email_change.new_email, is_anonymous = false
    where account.user_id = apply_email_change.user_id;
  delete from auth.mail_tokens as token where token.user_id = apply_email_change.user_id;
  perform auth.log_event('email.changed', apply_email_change.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.apply_email_change is 'Changes the address, which is verified by that. The caller has locked the account.';
