-- Checks beforehand what a client can get wrong, so that no row of auth.users appears in the detail of an error.
create or replace function auth.register(
  name text, email text, age integer, username text, password_hash text, client_info auth.client_info
) returns public.users as $$
declare
  v_username text := coalesce(username, email);
  v_user public.users;
  v_constraint text;
  v_fault public.field_error;
begin
  if auth.username_fault(username, email) is not null then
    raise exception '%', auth.username_fault(username, email) using errcode = 'WRONG', detail = 'username';
  end if;

  begin
    insert into public.users (name, email, age) values (register.name, register.email, register.age)
      returning * into v_user;
  exception
    when unique_violation then
      raise exception 'This e-mail address is already registered'
        using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
    when check_violation then
      get stacked diagnostics v_constraint = constraint_name;
      v_fault := api.field_error('public.users', v_constraint);
      raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
  end;

  begin
    insert into auth.users (user_id, username, password_hash)
      values (v_user.id, v_username, register.password_hash);
  exception when unique_violation then
    raise exception 'This user name is already taken' using errcode = 'TAKEN', detail = 'username';
  end;

  perform auth.log_event('account.created', v_user.id, client_info);
  return v_user;
end;
$$ language plpgsql set search_path = '';
comment on function auth.register is
  'Creates a user who can sign in; without a password hash, through another provider only.';
