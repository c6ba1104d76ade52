--! Previous: sha1:d548cba8a7f5736e4f5983966da83ecf3e1f9f64
--! Hash: sha1:cc03a9457b3704c362b6284cfbdbb16788e69412
--! Message: names of constraints

-- A project's migration may look for a constraint, index or trigger by its name alone (`if not exists (select from pg_constraint where conname =
-- 'roles_pkey')`), and finds that of another schema. So those of the platform have a name that no project chooses. A trigger keeps its
-- number, which is its place among those of the table.
do $$
declare
  v_table record;
  v_name text;
  v_new_name text;
  v_event_trigger text;
begin
  for v_table in select to_regclass(listed.name) as id, listed.names from (values
    ('api.schedule_runs', 'schedule_runs_done schedule_runs_pkey schedule_runs_planned_at_idx schedule_runs_schedule_fkey schedule_runs_status_known
      schedule_runs_task schedule_runs_unfinished'),
    ('api.schedules', '_100_check_role _200_check schedules_arguments_object schedules_claims_object schedules_cron_max_length schedules_name_length
      schedules_pkey schedules_role_idx schedules_time_limit_range'),
    ('api.versions', 'versions_check versions_number_check versions_one_current versions_pkey versions_status_check versions_successor_fkey
      versions_successor_idx'),
    ('api.webhooks', '_100_check _900_capture webhooks_claims_object webhooks_events_known webhooks_max_attempts_range webhooks_name_key
      webhooks_name_length webhooks_pkey webhooks_secret_form webhooks_timeout_range webhooks_url_form webhooks_where_length'),
    ('auth.account_settings', 'account_settings_is_only account_settings_pkey'),
    ('auth.api_keys', 'api_keys_check api_keys_key_hash_check api_keys_key_hash_key api_keys_owner_id_fkey api_keys_owner_id_idx api_keys_pkey
      api_keys_prefix_check api_keys_role_fkey api_keys_role_idx'),
    ('auth.audit_log', 'audit_log_at_idx audit_log_pkey audit_log_request_id_max_length audit_log_sign_ins audit_log_user_id_at_idx'),
    ('auth.deleted_accounts', 'deleted_accounts_deleted_at_idx deleted_accounts_pkey'),
    ('auth.federation_codes', 'federation_codes_code_hash_check federation_codes_expires_at_idx federation_codes_pkey federation_codes_user_id_fkey
      federation_codes_user_id_idx'),
    ('auth.federation_logins', 'federation_logins_browser_hash_check federation_logins_expires_at_idx federation_logins_mode_check federation_logins_pkey
      federation_logins_provider_fkey federation_logins_provider_idx federation_logins_user_id_fkey federation_logins_user_id_idx'),
    ('auth.federation_replays', 'federation_replays_expires_at_idx federation_replays_issuer_fkey federation_replays_pkey'),
    ('auth.federation_sessions', 'federation_sessions_pkey federation_sessions_provider_fkey federation_sessions_provider_subject_idx
      federation_sessions_session_hash_fkey'),
    ('auth.federation_states', 'federation_states_browser_hash_check federation_states_code_challenge_max_length federation_states_expires_at_idx
      federation_states_mode_check federation_states_pkey federation_states_provider_fkey federation_states_provider_idx
      federation_states_purpose_check federation_states_redirect_to_max_length federation_states_state_hash_check
      federation_states_user_id_fkey federation_states_user_id_idx'),
    ('auth.flow_states', 'flow_states_challenge_check flow_states_challenge_method_check flow_states_check flow_states_code_hash_check
      flow_states_code_hash_key flow_states_expires_at_idx flow_states_method_max_length flow_states_pkey flow_states_user_id_fkey
      flow_states_user_id_idx'),
    ('auth.identities', 'identities_issuer_fkey identities_pkey identities_subject_max_length identities_user_id_fkey identities_user_id_idx'),
    ('auth.login_throttle', 'login_throttle_counts login_throttle_key_max_length login_throttle_pkey login_throttle_scope_check
      login_throttle_window_started_at_idx'),
    ('auth.mail_tokens', 'mail_tokens_check mail_tokens_code_hash_check mail_tokens_email_max_length mail_tokens_expires_at_idx mail_tokens_flow_id_fkey
      mail_tokens_flow_id_idx mail_tokens_lower_idx mail_tokens_new_email_max_length mail_tokens_password_hash_check mail_tokens_pkey
      mail_tokens_purpose_check mail_tokens_token_hash_check mail_tokens_user_id_fkey mail_tokens_user_id_purpose_idx
      mail_tokens_user_metadata_max_length mail_tokens_user_name_max_length'),
    ('auth.mfa_backup_codes', 'mfa_backup_codes_pkey mfa_backup_codes_user_id_fkey'),
    ('auth.mfa_challenges', 'mfa_challenges_challenge_check mfa_challenges_expires_at_idx mfa_challenges_factor_id_fkey mfa_challenges_factor_id_idx
      mfa_challenges_pkey mfa_challenges_purpose mfa_challenges_purpose_check mfa_challenges_user_id_fkey mfa_challenges_user_id_idx'),
    ('auth.mfa_factors', 'mfa_factors_enabled mfa_factors_factor_type_check mfa_factors_friendly_name_max_length mfa_factors_of_user mfa_factors_pkey
      mfa_factors_secret mfa_factors_state_check mfa_factors_user_friendly_name_unique mfa_factors_user_id_fkey'),
    ('auth.oauth_authorizations', 'oauth_authorizations_challenge_check oauth_authorizations_check oauth_authorizations_client_id_fkey
      oauth_authorizations_client_id_idx oauth_authorizations_code_hash_check oauth_authorizations_code_hash_key
      oauth_authorizations_expires_at_idx oauth_authorizations_nonce_length oauth_authorizations_pkey
      oauth_authorizations_redirect_uri_length oauth_authorizations_resource_length oauth_authorizations_scopes_number
      oauth_authorizations_session_id_fkey oauth_authorizations_session_id_idx oauth_authorizations_state_length
      oauth_authorizations_unopened oauth_authorizations_unopened_of_network oauth_authorizations_user_id_fkey
      oauth_authorizations_user_id_idx'),
    ('auth.oauth_clients', 'oauth_clients_auth_method_check oauth_clients_document oauth_clients_grant_types_known oauth_clients_id_length
      oauth_clients_logo_uri_length oauth_clients_name_length oauth_clients_newest_first oauth_clients_pkey
      oauth_clients_redirect_uris_length oauth_clients_redirect_uris_number oauth_clients_registered oauth_clients_registration_check
      oauth_clients_scope_length oauth_clients_secret oauth_clients_secret_hash_check oauth_clients_uri_length'),
    ('auth.oauth_grants', 'oauth_grants_check oauth_grants_client_id_fkey oauth_grants_client_id_idx oauth_grants_expires_at_idx oauth_grants_pkey
      oauth_grants_resource_length oauth_grants_scopes_number oauth_grants_user_id_client_id_key oauth_grants_user_id_fkey'),
    ('auth.oauth_sessions', 'oauth_sessions_grant_id_fkey oauth_sessions_grant_id_idx oauth_sessions_pkey oauth_sessions_session_id_fkey'),
    ('auth.passkeys', 'passkeys_counter_check passkeys_credential_id_check passkeys_credential_id_key passkeys_factor_id_fkey passkeys_factor_id_idx
      passkeys_friendly_name_max_length passkeys_pkey passkeys_public_key_max_length passkeys_user_id_fkey passkeys_user_id_idx'),
    ('auth.permissions', 'permissions_name_check permissions_pkey'),
    ('auth.providers', 'providers_client providers_issuer_key providers_kind_check providers_name_check providers_pkey providers_settings
      providers_settings_check providers_title_check'),
    ('auth.refresh_tokens', 'refresh_tokens_check refresh_tokens_expires_at_idx refresh_tokens_family_id_fkey refresh_tokens_family_id_idx
      refresh_tokens_idempotency_key_hash_check refresh_tokens_pkey refresh_tokens_retry refresh_tokens_token_hash_check
      refresh_tokens_user_agent_max_length refresh_tokens_user_id_fkey refresh_tokens_user_id_idx'),
    ('auth.role_permissions', 'role_permissions_permission_fkey role_permissions_permission_idx role_permissions_pkey role_permissions_role_fkey'),
    ('auth.roles', 'roles_pkey'),
    ('auth.sessions', 'sessions_check sessions_id_hash_check sessions_least_idx sessions_pkey sessions_user_agent_max_length sessions_user_id_fkey
      sessions_user_id_key'),
    ('auth.token_sessions', 'token_sessions_aal_check token_sessions_amr_check token_sessions_factor_id_fkey token_sessions_of_factor token_sessions_pkey
      token_sessions_refreshed_at_idx token_sessions_tag_max_length token_sessions_user_agent_max_length token_sessions_user_id_fkey
      token_sessions_user_id_idx'),
    ('auth.user_permissions', 'user_permissions_permission_fkey user_permissions_permission_idx user_permissions_pkey user_permissions_user_id_fkey'),
    ('auth.user_roles', '_100_end_tokens user_roles_pkey user_roles_role_fkey user_roles_role_idx user_roles_user_id_fkey'),
    ('auth.users', '_100_follow_changes _100_remember_deletion _200_end_oauth_codes users_email_any_case_key users_email_max_length users_id_key
      users_newest_first users_password_hash_check users_phone_key users_phone_max_length users_pkey users_raw_app_meta_data_check
      users_raw_user_meta_data_check users_username_any_case_key users_username_check users_user_id_fkey users_username_format users_username_max_length
      users_verified_email_max_length'),
    ('content_service.bounds', 'bounds_bound_check bounds_pkey'),
    ('content_service.bucket_usage', 'bucket_usage_bucket_id_fkey bucket_usage_pkey'),
    ('content_service.files', 'files_bytes_check files_hash_check files_pkey files_released_at_idx'),
    ('content_service.kept_answer_counts', 'kept_answer_counts_pkey'),
    ('content_service.kept_answers', 'kept_answers_expires_at_idx kept_answers_id_check kept_answers_of_caller kept_answers_pkey'),
    ('content_service.rate_limits', 'rate_limits_expire_idx rate_limits_pkey'),
    ('content_service.recorded_request_counts', 'recorded_request_counts_pkey recorded_request_counts_request_id_fkey'),
    ('content_service.recorded_requests', 'recorded_requests_id_check recorded_requests_pkey recorded_requests_seen_at_idx'),
    ('content_service.schedule_clock', 'schedule_clock_is_only_check schedule_clock_pkey'),
    ('content_service.shared_queries', 'shared_queries_name_length shared_queries_pkey shared_queries_text_length'),
    ('content_service.task_lanes', 'task_lanes_name_check task_lanes_pkey'),
    ('content_service.tasks', '_500_end_run _500_follow_run tasks_by_turn tasks_expires_at_idx tasks_failed tasks_lane_check tasks_of_caller
      tasks_of_caller_by_turn tasks_owner_idx tasks_pkey tasks_running tasks_status_check tasks_waiting_key tasks_work_finished_at_idx'),
    ('content_service.unfinished_uploads', 'unfinished_uploads_bucket_id_fkey unfinished_uploads_by_age unfinished_uploads_by_name unfinished_uploads_by_quota
      unfinished_uploads_bytes_check unfinished_uploads_pkey'),
    ('content_service.upload_parts', '_900_release_deleted _900_release_replaced upload_parts_by_content upload_parts_bytes_check upload_parts_content_fkey
      upload_parts_number_check upload_parts_pkey upload_parts_upload_id_fkey'),
    ('content_service.webhook_deliveries', 'webhook_deliveries_dead webhook_deliveries_delayed webhook_deliveries_moved webhook_deliveries_pending webhook_deliveries_pkey'),
    ('content_service.webhook_leases', 'webhook_leases_pkey'),
    ('graphile_migrate.current', 'current_pkey'),
    ('graphile_migrate.histories', 'histories_history_hash_key histories_pkey'),
    ('realtime.messages', 'messages_extension messages_pkey'),
    ('storage.buckets', '_900_count_usage bucket_name_is_valid buckets_max_bytes_check buckets_max_bytes_of_owner_check buckets_name_key buckets_pkey'),
    ('storage.objects', '_800_check_owner _900_count_added _900_count_changed _900_count_removed _900_keep_content _900_release_deleted
      _900_release_replaced bucketid_objname object_name_is_valid objects_bucket_id_fkey objects_by_content objects_by_name
      objects_content_fkey objects_pkey')
  ) as listed (name, names) where to_regclass(listed.name) is not null loop
    foreach v_name in array regexp_split_to_array(v_table.names, '\s+') loop
      v_new_name := regexp_replace(v_name, '^(_\d+_)?', '\1content_service_');
      if exists (select from pg_constraint where conrelid = v_table.id and conname = v_name) then
        execute format('alter table %s rename constraint %I to %I', v_table.id, v_name, v_new_name);
      elsif exists (select from pg_trigger where tgrelid = v_table.id and tgname = v_name) then
        execute format('alter trigger %I on %s rename to %I', v_name, v_table.id, v_new_name);
      elsif exists (select from pg_index join pg_class on pg_class.oid = indexrelid where indrelid = v_table.id and relname = v_name) then
        execute format(
          'alter index %I.%I rename to %I', (select relnamespace::regnamespace::name from pg_class where oid = v_table.id), v_name, v_new_name
        );
      end if;
    end loop;
    -- Since Postgres 18 these are constraints with names, too.
    for v_name in
      select conname from pg_constraint where conrelid = v_table.id and contype = 'n' and conname not like 'content\_service\_%'
    loop
      execute format('alter table %s rename constraint %I to %I', v_table.id, v_name, left('content_service_' || v_name, 63));
    end loop;
  end loop;
  foreach v_event_trigger in array array['log_whole_rows', 'publish_rows', 'schema_changed', 'schema_dropped'] loop
    if exists (
      select from pg_event_trigger where evtname = v_event_trigger and evtfoid::regproc::text like 'content\_service.tg\_\_%'
    ) then
      execute format('alter event trigger %I rename to %I', v_event_trigger, 'content_service_' || v_event_trigger);
    end if;
  end loop;
end $$;

-- Functions name these constraints.
do $$
declare
  v_constraints constant text := 'rate_limits_pkey|user_roles_pkey|login_throttle_pkey|identities_pkey|federation_replays_pkey|users_pkey|tasks_pkey|schedule_runs_pkey|oauth_clients_pkey|oauth_grants_user_id_client_id_key|recorded_requests_pkey|recorded_request_counts_pkey|unfinished_uploads_pkey';
  v_function regprocedure;
begin
  for v_function in
    select oid from pg_proc
    where pronamespace in ('api'::regnamespace, 'auth'::regnamespace, 'content_service'::regnamespace, 'storage'::regnamespace)
      and prosrc ~ ('on conflict on constraint (' || v_constraints || ')\M')
  loop
    execute regexp_replace(
      pg_get_functiondef(v_function), 'on conflict on constraint (' || v_constraints || ')\M', 'on conflict on constraint content_service_\1', 'g'
    );
  end loop;
end $$;
