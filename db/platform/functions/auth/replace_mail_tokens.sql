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
