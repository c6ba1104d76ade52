create or replace function auth.rename_user(user_id bigint, name text) returns void as $$
declare
  v_fault public.field_error;
begin
  select * into v_fault from auth.account_faults(rename_user.name, null, null, null) as fault where fault.field = 'name' limit 1;
  if found then
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
  end if;
  update auth.users as account set raw_user_meta_data = account.raw_user_meta_data || jsonb_build_object('name', rename_user.name)
    where account.user_id = rename_user.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.rename_user is 'Changes the name of the user who is signed in.';
