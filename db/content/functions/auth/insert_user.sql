create or replace function auth.insert_user(
  name text, email text, age integer, out user_id bigint, out user_row jsonb, out metadata jsonb
) as $$
declare
  v_user public.users;
  v_constraint text;
  v_fault public.field_error;
begin
  insert into public.users (name, email, age) values (insert_user.name, insert_user.email, insert_user.age)
    returning * into v_user;
  user_id := v_user.id;
  user_row := to_jsonb(v_user);
  metadata := '{}';
exception
  when unique_violation then
    raise exception 'This e-mail address is already registered'
      using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    v_fault := api.field_error('public.users', v_constraint);
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$$ language plpgsql set search_path = '';
comment on function auth.insert_user is
  'Creates the row of public.users: the id, the row that a registration returns, and the metadata of the account.';
