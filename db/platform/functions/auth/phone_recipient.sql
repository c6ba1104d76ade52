create or replace function auth.phone_recipient(phone text, out user_id bigint, out state text, out user_json jsonb) as $$
declare
  v_account auth.users;
begin
  select account.user_id into user_id from auth.users as account where account.phone = phone_recipient.phone;
  v_account := auth.lock_account(user_id);
  user_id := v_account.user_id;
  user_json := auth.user_json(v_account.user_id);
  state := case
    when v_account.user_id is null then 'absent'
    when auth.is_disabled(v_account) then 'disabled'
    else 'found'
  end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.phone_recipient is 'The account with that phone number, which is locked: absent, disabled or found.';
