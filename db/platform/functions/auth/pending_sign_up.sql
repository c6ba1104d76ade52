-- Where somebody else has signed up, too, nobody knows whose mail is sent again: its proof brings the password of none.
create or replace function auth.pending_sign_up(user_id bigint, purpose text) returns jsonb
language sql stable set search_path = ''
as $$
  select coalesce(sign_up.token, jsonb_build_object('password_hash', account.password_hash))
  from auth.users as account
  left join lateral (
    select jsonb_build_object('password_hash', token.password_hash, 'name', token.user_name, 'metadata', token.user_metadata) as token
    from auth.mail_tokens as token
    where token.user_id = account.user_id and token.purpose = pending_sign_up.purpose
      and token.purpose in ('signup', 'sms_signup') and token.password_hash is not null
    order by token.created_at desc limit 1
  ) as sign_up on true
  where account.user_id = pending_sign_up.user_id
    and not (account.has_several_sign_ups is true and pending_sign_up.purpose in ('signup', 'sms_signup'));
$$;
comment on function auth.pending_sign_up is
  'What a mail to this account proves if it is of no sign-up of its own: {name, password_hash, metadata}; null: no password.';
