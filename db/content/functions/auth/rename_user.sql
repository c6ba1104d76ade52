create or replace function auth.rename_user(user_id bigint, name text) returns void as $$
declare
  v_constraint text;
  v_fault public.field_error;
begin
  update public.users set name = rename_user.name where users.id = rename_user.user_id;
exception when check_violation then
  get stacked diagnostics v_constraint = constraint_name;
  v_fault := api.field_error('public.users', v_constraint);
  raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$$ language plpgsql set search_path = '';
comment on function auth.rename_user is 'Changes the name of the user who is signed in.';
