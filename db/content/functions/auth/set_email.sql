create or replace function auth.set_email(user_id bigint, email text) returns void as $$
declare
  v_constraint text;
  v_fault public.field_error;
begin
  update public.users set email = set_email.email where users.id = set_email.user_id;
exception
  when unique_violation then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    v_fault := api.field_error('public.users', v_constraint);
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_email is 'Changes the address of the user. The caller has locked the account.';
