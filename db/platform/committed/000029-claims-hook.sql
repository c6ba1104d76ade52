--! Previous: sha1:e63d8c96879336d4dacbcfb628bd3fca642fad99
--! Hash: sha1:de8bd47fdb4f2b25b961581e6735e5c4f3064eb3
--! Message: claims hook

-- The role that runs the function of CLAIMS_HOOK, by Supabase's name: it may do what is granted to it, and nothing else.
do $$
begin
  if not exists (select from pg_roles where rolname = 'supabase_auth_admin') then
    create role supabase_auth_admin nologin;
  end if;
  if not pg_has_role(
    current_user, 'supabase_auth_admin', case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end
  ) then
    execute format('grant supabase_auth_admin to %I', current_user);
  end if;
exception when insufficient_privilege then
  raise warning '% cannot act as supabase_auth_admin, which CLAIMS_HOOK requires', current_user
    using hint = format('As a superuser, run once: grant supabase_auth_admin to %I', current_user);
end $$;
