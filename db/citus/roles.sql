-- Creates the roles of requests on all nodes of Citus. `npm run migrate` runs it on a coordinator, before its migrations; a superuser may run
-- it repeatedly. Each statement is a transaction: the second one finds on the workers what the first one has committed there.

-- Citus sends these definitions to the workers, and to nodes that are added later. The coordinator connects to a worker as the caller's
-- role, which therefore may log in; it has no password. Roles that the coordinator has without login stay so there: they belong to all its
-- databases. Citus creates them without login on a node that is added later, until this runs again.
do $$
declare
  v_row record;
begin
  for v_row in
    select * from (values
      ('authenticator', 'login noinherit'),
      ('anon', 'login'),
      ('authenticated', 'login'),
      ('admin', 'login'),
      ('service_role', 'login bypassrls'),
      ('supabase_auth_admin', 'nologin')
    ) as wanted (name, attributes)
    where not exists (select from pg_roles where rolname = wanted.name)
  loop
    execute format('create role %I %s', v_row.name, v_row.attributes);
  end loop;
  for v_row in
    select * from (values
      ('authenticated', 'admin'),
      ('anon', 'authenticator'),
      ('authenticated', 'authenticator'),
      ('admin', 'authenticator'),
      ('service_role', 'authenticator')
    ) as wanted (role, member)
    where not pg_has_role(wanted.member, wanted.role, 'member')
  loop
    execute format('grant %I to %I', v_row.role, v_row.member);
  end loop;
end $$;

-- Roles that existed on the coordinator alone, because they were created before the extension or without propagation, and roles of a project
-- that the login of requests may become, without the predefined roles of Postgres, which each node has. Those of requests may log in on a
-- worker; their other attributes are those of the coordinator.
do $$
declare
  v_roles jsonb;
  v_memberships jsonb;
  v_failed record;
begin
  select jsonb_agg(jsonb_build_object(
      'name', rolname,
      'is_caller', rolname <> 'supabase_auth_admin',
      'inherits', rolinherit,
      'bypasses_policies', rolbypassrls,
      'attributes', concat_ws(' ',
        case when rolname <> 'supabase_auth_admin' then 'login' end,
        case when rolinherit then 'inherit' else 'noinherit' end,
        case when rolbypassrls then 'bypassrls' else 'nobypassrls' end)
    ) order by oid)
    into v_roles
    from pg_roles
    where not rolsuper and rolname !~ '^pg_' and (rolname = 'supabase_auth_admin' or pg_has_role('authenticator', oid, 'member'));
  select coalesce(jsonb_agg(jsonb_build_object('role', granted.rolname, 'member', member.rolname)), '[]')
    into v_memberships
    from pg_auth_members as membership
    join pg_roles as granted on granted.oid = membership.roleid
    join pg_roles as member on member.oid = membership.member
    where not member.rolsuper and pg_has_role('authenticator', granted.oid, 'member') and pg_has_role('authenticator', member.oid, 'member');
  select nodename, nodeport, result
    into v_failed
    from run_command_on_workers(replace(replace($command$do $worker$
declare
  v_row record;
begin
  -- A worker would send definitions to the other nodes, or refuse them.
  perform set_config('citus.enable_ddl_propagation', 'off', true);
  for v_row in
    select * from jsonb_to_recordset(:roles) as wanted (name text, is_caller boolean, inherits boolean, bypasses_policies boolean, attributes text)
    where not exists (
      select from pg_roles
      where rolname = wanted.name
        and (rolcanlogin or not wanted.is_caller)
        and rolinherit = wanted.inherits
        and rolbypassrls = wanted.bypasses_policies
    )
  loop
    if exists (select from pg_roles where rolname = v_row.name) then
      execute format('alter role %I %s', v_row.name, v_row.attributes);
    else
      execute format('create role %I %s', v_row.name, v_row.attributes);
    end if;
  end loop;
  for v_row in
    select * from jsonb_to_recordset(:memberships) as wanted (role text, member text)
    where not pg_has_role(wanted.member, wanted.role, 'member')
  loop
    execute format('grant %I to %I', v_row.role, v_row.member);
  end loop;
end $worker$
$command$, ':roles', format('%L::jsonb', v_roles)), ':memberships', format('%L::jsonb', v_memberships)))
    where not success
    limit 1;
  if found then
    raise exception 'The roles of requests could not be created on the node %:% of Citus: %', v_failed.nodename, v_failed.nodeport, v_failed.result
      using hint = 'Start the node, or remove it by citus_remove_node, and run the migrations as a superuser.';
  end if;
end $$;
