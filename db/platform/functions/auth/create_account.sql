create or replace function auth.create_account(attributes jsonb, password_hash text, client_info auth.client_info)
returns bigint as $$
declare
  v_changes constant jsonb := attributes - '{id,name,email,role}'::text[];
  v_user_id bigint;
begin
  v_user_id := auth.add_account(
    attributes ->> 'name', attributes ->> 'email', coalesce(attributes ->> 'role', 'authenticated'), create_account.password_hash, client_info
  );
  begin
    update auth.users as account set
        id = coalesce((attributes ->> 'id')::uuid, account.id),
        verified_email = case when (attributes ->> 'email_confirm')::boolean then account.verified_email end
      where account.user_id = v_user_id;
  exception when unique_violation then
    raise exception 'A user with this id exists already' using errcode = 'TAKEN', detail = 'id';
  end;
  if v_changes <> '{}' then
    perform auth.change_account(v_user_id, v_changes, null, client_info);
  end if;
  return v_user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_account is 'Creates an account as an administrator, and returns its key.';
