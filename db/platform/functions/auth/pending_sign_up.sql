-- Of several sign-ups, nobody knows whose mail is sent again: its proof brings the password of none.
create or replace function auth.pending_sign_up(user_id bigint, purpose text) returns jsonb as $$
declare
  v_pending auth.mail_tokens[];
begin
  if purpose in ('signup', 'sms_signup') then
    v_pending := array(
      select token from auth.mail_tokens as token
      where token.user_id = pending_sign_up.user_id and token.purpose in ('signup', 'sms_signup', 'verify')
        and token.expires_at > clock_timestamp()
      limit 2
    );
  end if;
  return case coalesce(cardinality(v_pending), 0)
    when 0 then (
      select jsonb_build_object('password_hash', account.password_hash)
      from auth.users as account where account.user_id = pending_sign_up.user_id
    )
    when 1 then jsonb_build_object(
      'password_hash', v_pending[1].password_hash, 'name', v_pending[1].user_name, 'metadata', v_pending[1].user_metadata
    )
  end;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.pending_sign_up is
  'What a mail to this account proves if it is of no sign-up of its own: {name, password_hash, metadata}; null: no password.';
