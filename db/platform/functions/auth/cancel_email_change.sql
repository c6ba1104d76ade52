create or replace function auth.cancel_email_change(user_id bigint) returns void as $$
  delete from auth.mail_tokens as token
  where token.user_id = cancel_email_change.user_id and token.purpose in ('email_change_current', 'email_change_new');
$$ language sql set search_path = '';
comment on function auth.cancel_email_change is 'Ends a change of address that is in progress.';
