-- A new one ends the previous one of the same purpose. Of a phone number one code is valid: it looks the same whatever it is for.
create or replace function auth.add_mail_code(
  token_hash bytea, code_hash bytea, purpose text, user_id bigint, email text, new_email text, flow_id uuid, seconds integer
) returns void as $$
begin
  delete from auth.mail_tokens as sent
    where sent.user_id = add_mail_code.user_id and (
      sent.purpose = add_mail_code.purpose
      or sent.purpose in ('sms', 'sms_signup') and add_mail_code.purpose in ('sms', 'sms_signup')
    );
  insert into auth.mail_tokens (token_hash, code_hash, purpose, user_id, email, new_email, flow_id, is_pkce, expires_at)
    values (
      add_mail_code.token_hash, add_mail_code.code_hash, add_mail_code.purpose, add_mail_code.user_id, add_mail_code.email,
      add_mail_code.new_email, add_mail_code.flow_id, add_mail_code.flow_id is not null, now() + make_interval(secs => seconds)
    );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_mail_code is 'Stores the link and the code of a mail. The caller has locked the account.';
