-- A mail that is sent again belongs to the sign-up that waits, if that is only one; a change of address, to the account as it is.
create or replace function auth.add_mail_code(
  token_hash bytea, code_hash bytea, purpose text, user_id bigint, email text, new_email text, flow_id uuid, seconds integer,
  sign_up jsonb default null
) returns void as $$
declare
  v_sign_up jsonb := add_mail_code.sign_up;
begin
  if v_sign_up is null and purpose in ('signup', 'sms_signup', 'email_change_new', 'email_change_current') then
    v_sign_up := auth.pending_sign_up(add_mail_code.user_id, add_mail_code.purpose);
  end if;
  perform auth.replace_mail_tokens(add_mail_code.user_id, add_mail_code.purpose, v_sign_up ->> 'password_hash');
  insert into auth.mail_tokens (
    token_hash, code_hash, purpose, user_id, email, new_email, flow_id, is_pkce, expires_at, password_hash, user_name, user_metadata
  ) values (
    add_mail_code.token_hash, add_mail_code.code_hash, add_mail_code.purpose, add_mail_code.user_id, add_mail_code.email,
    add_mail_code.new_email, add_mail_code.flow_id, add_mail_code.flow_id is not null, now() + make_interval(secs => seconds),
    v_sign_up ->> 'password_hash', v_sign_up ->> 'name', nullif(v_sign_up -> 'metadata', 'null')
  );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_mail_code is
  'Stores the link and the code of a mail, and the sign-up that they prove: {name, password_hash, metadata}. The caller has locked the account.';
