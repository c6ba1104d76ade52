create or replace function auth.set_phone(user_id bigint, phone text, is_confirmed boolean) returns void as $$
begin
  update auth.users as account set
    phone = set_phone.phone, phone_confirmed_at = case when is_confirmed then clock_timestamp() end
  where account.user_id = set_phone.user_id;
exception when unique_violation then
  raise exception 'This phone number is already registered' using errcode = 'TAKEN', detail = 'phone';
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_phone is 'Sets the phone number of an account.';
