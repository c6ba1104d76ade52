-- The mail goes to the verified address, as that to set a password does. A user without an account gets one, which nobody can sign in to
-- before the mail has proved the address.
create or replace function auth.code_recipient(
  email text, out user_id bigint, out address text, out state text, out metadata jsonb, out new_email text
) as $$
declare
  v_account auth.users;
begin
  user_id := auth.find_user(code_recipient.email);
  v_account := auth.lock_account(user_id);
  if v_account.user_id is null and user_id is not null then
    insert into auth.users (user_id, username, email) values (user_id, code_recipient.email, code_recipient.email) on conflict do nothing;
    v_account := auth.lock_account(user_id);
  end if;
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
  'The account with that address, which is locked, and is made for a user without one: absent, disabled, unconfirmed or confirmed.';
