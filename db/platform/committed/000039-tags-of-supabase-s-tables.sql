--! Previous: sha1:5c893eba3943b48aeaf3bb5143f82a544fa73d46
--! Hash: sha1:82de0d16372a69c45824563578b2dfd737444a58
--! Message: tags of Supabase's tables

-- These tags tell `branch create` what to do with the tables of imported Supabase projects; their template has them since then. Tables of the real
-- extensions belong to others, and keep their comments.
do $do$
declare
  v_table regclass;
  v_tag text;
begin
  for v_table, v_tag in
    select pg_class.oid, tag
    from (values
      ('cron', e'@sample all\n@anonymize empty', '^job$'),
      ('cron', e'@sample none\n@anonymize empty', '^(job_run_details|due_times)$'),
      ('net', e'@sample none\n@anonymize empty', '^(http_request_queue|_http_response)$'),
      ('supabase_functions', e'@sample none\n@anonymize empty', '^hooks$'),
      ('vault', e'@sample all\n@anonymize empty', '^secrets$'),
      ('pgmq', '@anonymize empty', '^[qa]_'),
      ('realtime', e'@sample none\n@anonymize empty', '^messages$'),
      ('supabase_auth', '@anonymize empty', '^(identity_rows|(session|identity|mfa_factor|audit_log)_mirror)$'),
      ('auth', '@anonymize empty', '^(sso_providers|sso_domains|saml_providers|saml_relay_states)$')
    ) as tagged (schema, tag, names)
    join pg_class on relname ~ names and relnamespace = to_regnamespace(schema)
    where relkind in ('r', 'p') and relowner = to_regrole(quote_ident(current_user))
      and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')
      and coalesce(obj_description(pg_class.oid, 'pg_class'), '') !~ '@(anonymize|sample)'
  loop
    execute format('comment on table %s is %L', v_table, concat_ws(e'\n', v_tag, obj_description(v_table, 'pg_class')));
  end loop;
end $do$;
