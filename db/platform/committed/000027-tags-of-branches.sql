--! Previous: sha1:52a04fec67e49fc1373614c9f65555707a0b6f66
--! Hash: sha1:03e8984152db824cf2af062d8a9cc390dfb1d1f8
--! Message: tags of branches

-- What `branch create` does with the tables of the service: `@sample` says which rows come with a sample besides those that others refer to,
-- `@anonymize` what is replaced or left out. Who uses an anonymized branch can neither sign in to an account nor read a file,
-- and it has no secret of a provider or of a receiver of webhooks.
do $do$
declare
  v_table text;
  v_column text;
  v_tag text;
begin
  for v_table, v_tag in
    select format('%s.%s', schema, name), tag
    from (values
      ('api', '@sample all', 'versions'),
      ('auth', '@sample all', 'account_settings roles permissions role_permissions'),
      ('storage', '@sample all', 'buckets'),
      ('content_service', '@sample all', 'bounds schedule_clock task_lanes'),
      ('auth', '@sample with user_id', 'users user_roles user_permissions'),
      ('api', e'@sample all\n@anonymize empty', 'schedules webhooks'),
      ('auth', e'@sample all\n@anonymize empty', 'oauth_clients providers'),
      ('content_service', e'@sample all\n@anonymize empty', 'bucket_usage shared_queries'),
      ('auth', e'@sample with user_id\n@anonymize empty', 'mfa_factors mfa_backup_codes passkeys identities oauth_grants'),
      ('auth', e'@sample with owner_id\n@anonymize empty', 'api_keys'),
      ('storage', '@anonymize empty', 'objects'),
      ('auth', e'@sample none\n@anonymize empty', 'audit_log deleted_accounts sessions token_sessions refresh_tokens login_throttle
        flow_states mail_tokens mfa_challenges federation_states federation_logins federation_codes federation_sessions
        federation_replays oauth_sessions oauth_authorizations'),
      ('api', e'@sample none\n@anonymize empty', 'schedule_runs'),
      ('realtime', e'@sample none\n@anonymize empty', 'messages'),
      ('content_service', e'@sample none\n@anonymize empty', 'kept_answers kept_answer_counts rate_limits tasks webhook_deliveries
        webhook_leases unfinished_uploads upload_parts files')
    ) as tagged (schema, tag, names), regexp_split_to_table(names, '\s+') as name
  loop
    execute format('comment on table %s is %L', v_table, concat_ws(e'\n', v_tag, obj_description(v_table::regclass, 'pg_class')));
  end loop;

  for v_column, v_tag in
    values ('username', 'email'), ('email', 'email'), ('verified_email', 'email'), ('password_hash', 'null'), ('phone', 'null'),
      ('raw_user_meta_data', 'fixed {}'), ('raw_app_meta_data', 'fixed {}')
  loop
    execute format('comment on column auth.users.%s is %L', v_column, (
      select concat_ws(e'\n', '@anonymize ' || v_tag, col_description(attrelid, attnum))
      from pg_attribute where attrelid = 'auth.users'::regclass and attname = v_column
    ));
  end loop;
end $do$;
