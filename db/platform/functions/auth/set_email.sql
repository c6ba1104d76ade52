-- A database whose accounts belong to rows of public.users has the address there.
create or replace function auth.set_email(user_id bigint, email text) returns void as $$
declare
  v_constraint text;
  v_fault public.field_error;
begin
  if exists (
    select from pg_constraint
    where conrelid = 'auth.users'::regclass and contype = 'f' and confrelid = to_regclass('public.users')
  ) then
    update public.users set email = set_email.email where users.id = set_email.user_id;
  else
    update auth.users as account set
        email = set_email.email,
        username = case when lower(account.username) = lower(account.email) then set_email.email else account.username end
      where account.user_id = set_email.user_id;
  end if;
exception
  when unique_violation then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    v_fault := api.field_error('public.users', v_constraint);
    raise exception '%', coalesce(v_fault.message, 'Give a valid e-mail address') using errcode = 'WRONG', detail = 'email';
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_email is 'Changes the address of the user. The caller has locked the account.';
