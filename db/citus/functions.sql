-- Creates on all nodes of Citus the functions of schema auth that policies of distributed tables call: those that callers may execute, with
-- the functions that these call. `npm run migrate` runs it on a coordinator, after the migrations of the platform; it may be run again.
-- Citus creates their schema with its grants, and all of them on nodes that are added later.
--
-- Citus 11 and newer do nothing when a function is distributed that was distributed before, which may have been changed on the coordinator
-- alone since. So each function is also replaced by itself, which Citus sends to all nodes, and so are its grants.
--
-- A function is left out if it, or one that it calls, reads a table, takes a row of one, or has the rights of its owner, such as
-- auth.accepts_sign_ups: the tables of the platform are on the coordinator alone. It is also left out if one of these functions has another body
-- than one of standard SQL (`return …`, `begin atomic … end`): Postgres records only for those what they read and call.
--
-- Functions of extensions are on all nodes with their extension, and Citus creates aggregates with the functions that call them.
do $$
declare
  v_function regprocedure;
  v_role regrole;
begin
  for v_function in
    -- Neither those of Postgres nor those of extensions.
    with recursive own as (
      select function.oid, function.pronamespace, function.prokind, function.prosecdef, function.prosqlbody is not null as is_standard
      from pg_proc as function
      where function.oid >= 16384
        and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = function.oid and deptype = 'e')
    ),
    called (root, oid) as (
      select function.oid, function.oid
      from own as function
      where function.pronamespace = to_regnamespace('auth')
        and function.prokind = 'f'
        and (has_function_privilege('anon', function.oid, 'execute') or has_function_privilege('authenticated', function.oid, 'execute'))
      union
      select called.root, function.oid
      from called
      join pg_depend as dependency on dependency.classid = 'pg_proc'::regclass and dependency.objid = called.oid
      join own as function on dependency.refclassid = 'pg_proc'::regclass and function.oid = dependency.refobjid
    ),
    local (root) as (
      select called.root
      from called
      join own as function on function.oid = called.oid
      where function.prosecdef or (function.prokind <> 'a' and not function.is_standard)
      union
      select called.root
      from called
      join pg_depend as dependency on dependency.classid = 'pg_proc'::regclass and dependency.objid = called.oid
      left join pg_type as type on dependency.refclassid = 'pg_type'::regclass and type.oid = dependency.refobjid
      left join pg_type as element on element.oid = coalesce(nullif(type.typelem, 0), type.oid)
      left join pg_class as class on class.oid = element.typrelid
      where dependency.refclassid = 'pg_class'::regclass or class.relkind <> 'c'
    )
    select function.oid::regprocedure
    from own as function
    where function.prokind = 'f'
      and exists (select from called where called.oid = function.oid and called.root not in (select local.root from local))
    order by function.oid
  loop
    perform create_distributed_function(v_function);
    execute pg_get_functiondef(v_function);
    for v_role in
      select grantee::regrole from pg_proc, aclexplode(proacl)
      where pg_proc.oid = v_function and grantee <> 0 and grantee <> proowner and privilege_type = 'EXECUTE'
    loop
      execute format('grant execute on function %s to %s', v_function, v_role);
    end loop;
  end loop;
end $$;
