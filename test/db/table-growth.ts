/** The bounds of a table that requests of anonymous or signed-in strangers add rows to. */
type Growth = {
  readonly table: string;
  /** The actions that add rows. */
  readonly by: string;
  /** A name of `content_service.bounds`, or another bound of the rows. */
  readonly bound: string;
  /** The time for which a row is kept. */
  readonly kept: string;
};

/** The tables that requests of strangers add rows to, as on the page about limits. */
export const GROWING: readonly Growth[] = [
  { table: "auth.api_keys", by: "own keys", bound: "50 of a user", kept: "until revoked" },
  {
    table: "auth.audit_log",
    by: "sign-ins, changes of accounts",
    bound: "`rows of auth.audit_log`",
    kept: "`days of auth.audit_log`",
  },
  { table: "auth.deleted_accounts", by: "deleted accounts", bound: "one per account", kept: "a day" },
  {
    table: "auth.federation_codes",
    by: "sign-ins by a provider",
    bound: "`RATE_LIMIT` in a minute",
    kept: "until used; a minute",
  },
  {
    table: "auth.federation_logins",
    by: "sign-ins by a provider",
    bound: "`RATE_LIMIT` in 10 minutes",
    kept: "until used; 10 minutes",
  },
  {
    table: "auth.federation_replays",
    by: "SAML responses of a provider",
    bound: "what the provider signs",
    kept: "as long as the response is valid",
  },
  { table: "auth.federation_sessions", by: "sign-ins by a provider", bound: "one per session", kept: "as the session" },
  {
    table: "auth.federation_states",
    by: "each start of a sign-in by a provider",
    bound: "`rows of auth.federation_states`",
    kept: "until used; 15 minutes",
  },
  {
    table: "auth.flow_states",
    by: "each start of a PKCE sign-in",
    bound: "`rows of auth.flow_states`",
    kept: "until used; an hour",
  },
  { table: "auth.identities", by: "linked providers", bound: "50 of a user", kept: "until unlinked" },
  {
    table: "auth.login_throttle",
    by: "sign-ins that fail",
    bound: "`rows of auth.login_throttle`",
    kept: "15 minutes",
  },
  {
    table: "auth.mail_tokens",
    by: "requested e-mails",
    bound: "3 per user and purpose",
    kept: "until used, or as its link is valid",
  },
  { table: "auth.mfa_backup_codes", by: "own second factors", bound: "10 of a user", kept: "until replaced" },
  {
    table: "auth.mfa_challenges",
    by: "second factors, passkeys",
    bound: "`rows of auth.mfa_challenges`",
    kept: "until used; 15 minutes",
  },
  {
    table: "auth.mfa_factors",
    by: "own second factors",
    bound: "10 of a user",
    kept: "until removed; pending ones 5 minutes",
  },
  {
    table: "auth.oauth_authorizations",
    by: "applications that ask for access",
    bound:
      "`rows of auth.oauth_authorizations`; before it, `unopened authorizations of a client` and `unopened authorizations of a network`",
    kept: "until decided; 10 minutes",
  },
  {
    table: "auth.oauth_clients",
    by: "applications that register themselves",
    bound: "`registered clients`",
    kept: "until removed; a day without a grant",
  },
  {
    table: "auth.oauth_grants",
    by: "access that users grant",
    bound: "`grants of a user`",
    kept: "until withdrawn; `OAUTH_GRANT_DAYS`",
  },
  {
    table: "auth.oauth_sessions",
    by: "sign-ins of applications",
    bound: "`sign-ins of a grant`",
    kept: "as its tokens",
  },
  { table: "auth.passkeys", by: "own passkeys", bound: "10 of a user", kept: "until removed" },
  {
    table: "auth.refresh_tokens",
    by: "sign-ins, refreshed tokens",
    bound: "`refresh tokens of a session`",
    kept: "until it expires",
  },
  { table: "auth.sessions", by: "sign-ins with a cookie", bound: "one per user", kept: "until it expires" },
  {
    table: "auth.token_sessions",
    by: "sign-ins",
    bound: "`token sessions of a user`",
    kept: "until its tokens expire",
  },
  { table: "auth.user_roles", by: "sign-ups", bound: "one per user", kept: "as the user" },
  {
    table: "auth.users",
    by: "sign-ups, also anonymous ones",
    bound: "`SIGN_UP_LIMIT` an hour from an address",
    kept: "until deleted",
  },
  { table: "graphile_worker._private_jobs", by: "tasks", bound: "`tasks of a caller`", kept: "until run" },
  {
    table: "content_service.bucket_usage",
    by: "uploads to buckets with bounds",
    bound: "one per owner and bucket",
    kept: "as the bucket",
  },
  {
    table: "content_service.files",
    by: "uploads",
    bound: "the policies of `storage.objects`; 5 % of the disk stay free",
    kept: "a day after its last object; an hour on a nearly full disk",
  },
  {
    table: "content_service.kept_answer_counts",
    by: "requests with an Idempotency-Key",
    bound: "one per caller with 256 keys",
    kept: "as its keys",
  },
  {
    table: "content_service.kept_answers",
    by: "requests with an Idempotency-Key",
    bound: "`idempotency keys of a caller`",
    kept: "a day",
  },
  {
    table: "content_service.rate_limits",
    by: "each caller's requests",
    bound: "`rows of content_service.rate_limits`",
    kept: "a minute; sign-ups an hour",
  },
  {
    table: "content_service.recorded_request_counts",
    by: "requests of new shapes",
    bound: "13 of a shape",
    kept: "65 minutes",
  },
  {
    table: "content_service.recorded_requests",
    by: "requests of new shapes",
    bound: "`rows of content_service.recorded_requests`",
    kept: "an hour",
  },
  { table: "content_service.tasks", by: "queued work", bound: "`kept tasks of a caller`", kept: "a day after the end" },
  {
    table: "content_service.unfinished_uploads",
    by: "uploads in parts by S3",
    bound: "`unfinished uploads of a caller`",
    kept: "until finished; a day",
  },
  {
    table: "content_service.upload_parts",
    by: "parts of uploads by S3",
    bound: "10,000 of an upload; `bytes of unfinished uploads of a caller`",
    kept: "as its upload",
  },
  {
    table: "content_service.webhook_deliveries",
    by: "changes of rows with a webhook",
    bound: "`dead deliveries of a webhook`; pending ones by the writes",
    kept: "until delivered, replayed or discarded",
  },
  { table: "storage.objects", by: "uploads", bound: "your policies", kept: "until deleted" },
];

/** The reasons why requests of strangers add no rows to the other tables. */
export const NOT_GROWING: Readonly<Record<string, string>> = {
  "content_service.shared_queries": "written by administrators, at most 1,000",
  "auth.email_templates": "written by administrators, one for each e-mail",
  "content_service.table_views": "written by administrators, at most 1,000",
  "storage.buckets": "written by those whom a policy lets: at first administrators alone",
  "api.schedule_runs": "written by the clock of the schedules",
  "api.schedules": "written by the owner and roles of operators",
  "api.versions": "written by the owner",
  "api.webhooks": "written by the owner and roles of operators",
  "auth.account_settings": "one row, written by each start of the service",
  "auth.permissions": "written by the owner",
  "auth.providers": "written by administrators",
  "auth.role_permissions": "written by the owner",
  "auth.roles": "written by the owner",
  "auth.user_permissions": "written by the owner",
  "graphile_worker._private_job_queues": "no job has a queue",
  "graphile_worker._private_known_crontabs": "one per schedule of the service",
  "graphile_worker._private_tasks": "one per kind of job",
  "graphile_worker.migrations": "written by updates of the queue",
  "content_service.bounds": "written by migrations and the owner",
  "content_service.schedule_clock": "one row",
  "content_service.task_lanes": "written by migrations",
  "content_service.webhook_leases": "one per webhook",
  "realtime.messages": "rows are only tried against its policies, and rolled back",
};
