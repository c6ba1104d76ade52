-- The address has a row or an account that nobody has proved: the mail belongs to this sign-up, whose password the account then has.
create or replace function auth.begin_sign_up(
  email text, sign_up jsonb, token_hash bytea, seconds integer, client_info auth.client_info
) returns text as $$
declare
  v_recipient record;
begin
  v_recipient := auth.code_recipient(begin_sign_up.email);
  if v_recipient.state <> 'unconfirmed' then
    return null;
  end if;
  return auth.add_mail_token(
    begin_sign_up.token_hash, 'verify', v_recipient.user_id, v_recipient.address, begin_sign_up.seconds, begin_sign_up.sign_up
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_sign_up is
  'The address to send a verification token to; null when the address is proved, or a token was sent within the last minute.';
