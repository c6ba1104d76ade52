-- The name of the table is kept with its schema. A change of a webhook that the service has paused lets it go on.
create or replace function private.tg_webhooks__check() returns trigger as $$
declare
  v_become text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
  v_name text[];
  v_given text := NEW.table_name;
begin
  if TG_OP = 'UPDATE' and NEW.disabled_because is not distinct from OLD.disabled_because then
    NEW.disabled_because := null;
  end if;
  if TG_OP = 'INSERT' or NEW.table_name <> OLD.table_name then
    begin
      v_name := parse_ident(NEW.table_name);
    exception when others then
      v_name := '{}';
    end;
    if cardinality(v_name) = 1 then
      v_name := array['public', v_name[1]];
    end if;
    select format('%I.%I', nspname, relname) into NEW.table_name
      from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where array[nspname, relname]::text[] = v_name and relkind in ('r', 'p') and relpersistence <> 't'
        and nspname not in ('api', 'private', 'pg_catalog', 'information_schema');
    if not found then
      raise exception 'There is no table % whose changes can be sent', v_given
        using errcode = 'WRONG', detail = 'table_name', hint = 'Write the name with its schema: public.orders.';
    end if;
  end if;
  if TG_OP = 'INSERT' or NEW.role <> OLD.role then
    -- The service sends what this role may read. The owner of the tables, and a superuser, are bound by no policy.
    if not exists (
      select from pg_roles as login
      where not login.rolsuper and has_function_privilege(login.oid, 'private.lock_task(text)', 'execute')
        and login.oid <> (select relowner from pg_class where oid = TG_RELID)
        and pg_has_role(login.oid, to_regrole(quote_ident(NEW.role)), v_become)
    ) then
      raise exception 'The login of the service cannot read as role %', NEW.role
        using errcode = 'WRONG', detail = 'role',
          hint = 'Choose a role of requests, such as service_role, whose rights decide which rows and columns are sent.';
    end if;
  end if;
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg_webhooks__check is 'Checks the table and the role of a webhook.';
