-- The mail goes to the verified address, as that to set a password does.
create or replace function auth.code_recipient(
  email text, out user_id bigint, out address text, out state text, out metadata jsonb, out new_email text
) as $$
declare
  v_account auth.users;
begin
  select account.user_id into user_id from auth.users as account where lower(account.email) = lower(code_recipient.email);
  v_account := auth.lock_account(user_id);
  user_id := v_account.user_id;
  address := coalesce(v_account.verified_email, v_account.email);
  metadata := v_account.raw_user_meta_data;
  new_email := auth.pending_email(v_account.user_id);
  state := case
    when v_account.user_id is null then 'absent'
    when auth.is_disabled(v_account) then 'disabled'
    when v_account.email_confirmed_at is null then 'unconfirmed'
    else 'confirmed'
  end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.code_recipient is
  'The account with that address, which is locked: absent, disabled, unconfirmed or confirmed.';
