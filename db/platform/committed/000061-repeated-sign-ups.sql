--! Previous: sha1:42fe4f22ad65245a711f7993069bbfc628bda164
--! Hash: sha1:b5fb6ba4a16ee91c6984f2dfa9a9d671ce756357
--! Message: repeated sign ups

-- Without a default: Postgres refuses one while functions with a standard body take a row of the table.
alter table auth.users add column if not exists has_several_sign_ups boolean;
comment on column auth.users.has_several_sign_ups is 'Whether several sign-ups gave a password for the address or number, before its proof.';

--! Included auth/replace_mail_tokens.sql
-- Several sign-ups may wait for the proof of one address: each mail proves its own, and a later one does not end those of others.
create or replace function auth.replace_mail_tokens(user_id bigint, purpose text, password_hash text) returns void as $$
declare
  v_max_others constant integer := case when purpose in ('signup', 'sms_signup', 'verify') then 2 else 0 end;
begin
  -- Remembered beyond the time that the mails are valid.
  update auth.users as account set has_several_sign_ups = true
    where account.user_id = replace_mail_tokens.user_id and replace_mail_tokens.password_hash is not null
      and account.has_several_sign_ups is not true and (
        account.password_hash <> replace_mail_tokens.password_hash
        or exists (
          select from auth.mail_tokens as pending
          where pending.user_id = replace_mail_tokens.user_id and pending.password_hash <> replace_mail_tokens.password_hash
        )
      );
  delete from auth.mail_tokens as sent
    where sent.user_id = replace_mail_tokens.user_id and sent.purpose = 'sms_signup' and replace_mail_tokens.purpose = 'sms';
  delete from auth.mail_tokens as sent
    where sent.user_id = replace_mail_tokens.user_id and sent.purpose = replace_mail_tokens.purpose and sent.token_hash not in (
      select kept.token_hash from auth.mail_tokens as kept
      where kept.user_id = replace_mail_tokens.user_id and kept.purpose = replace_mail_tokens.purpose
        and kept.password_hash is distinct from replace_mail_tokens.password_hash
      order by kept.created_at desc limit v_max_others
    );
end;
$$ language plpgsql set search_path = '';
comment on function auth.replace_mail_tokens is 'Deletes the links and codes that a new mail of this purpose replaces.';
--! EndIncluded auth/replace_mail_tokens.sql
--! Included auth/pending_sign_up.sql
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
--! EndIncluded auth/pending_sign_up.sql
