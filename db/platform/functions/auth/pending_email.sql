create or replace function auth.pending_email(user_id bigint) returns text
language sql stable
begin atomic
  select token.new_email from auth.mail_tokens as token
  where token.user_id = pending_email.user_id and token.purpose in ('email_change_new', 'email_change_current')
    and token.expires_at > now()
  order by token.created_at desc
  limit 1;
end;

comment on function auth.pending_email is 'The address that the user changes to, once it is confirmed; null without a change.';
