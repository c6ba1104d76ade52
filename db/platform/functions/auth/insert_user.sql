-- The row of auth.users is inserted by auth.register, with the metadata.
create or replace function auth.insert_user(
  name text, email text, age integer, out user_id bigint, out user_row jsonb, out metadata jsonb
) as $$
declare
  v_fault public.field_error;
begin
  select * into v_fault from auth.account_faults(insert_user.name, insert_user.email, age, null) limit 1;
  if found then
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
  elsif auth.find_user(insert_user.email) is not null then
    raise exception 'This e-mail address is already registered'
      using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
  end if;
  user_id := nextval(pg_get_serial_sequence('auth.users', 'user_id'));
  metadata := jsonb_strip_nulls(jsonb_build_object('name', insert_user.name, 'age', age));
  user_row := jsonb_build_object('id', user_id, 'email', insert_user.email) || metadata;
end;
$$ language plpgsql set search_path = '';
comment on function auth.insert_user is
  'Begins a user: the id, the row that a registration returns, and the metadata of the account.';
