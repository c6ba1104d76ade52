--! Previous: sha1:10e3eaf89ca39d7debadb4984f0cd20421351c4d
--! Hash: sha1:750fcc3ab3633b1c2a8a8bce2dc7fad0874c2af0
--! Message: views of tables

-- Views of a table that administrators keep for one another in Studio. Only the owner reads and writes them, for /admin/v1/views.
create table content_service.table_views (
  schema_name text constraint content_service_table_views_schema_name_not_null not null
    constraint content_service_table_views_schema_name_max_length check (length(schema_name) <= 63),
  table_name  text constraint content_service_table_views_table_name_not_null not null
    constraint content_service_table_views_table_name_max_length check (length(table_name) <= 63),
  name        text constraint content_service_table_views_name_not_null not null
    constraint content_service_table_views_name_length check (length(name) between 1 and 200),
  query       text constraint content_service_table_views_query_not_null not null
    constraint content_service_table_views_query_max_length check (length(query) <= 10000),
  columns     text[] constraint content_service_table_views_columns_max_number check (cardinality(columns) <= 1600),
  saved_by    bigint,
  saved_at    timestamptz constraint content_service_table_views_saved_at_not_null not null default now(),
  constraint content_service_table_views_pkey primary key (schema_name, table_name, name)
);
alter table content_service.table_views enable row level security;
comment on table content_service.table_views is e'@sample all\n@anonymize empty\nViews of tables that administrators share in Studio.';
comment on column content_service.table_views.schema_name is 'The schema of the table.';
comment on column content_service.table_views.table_name is 'The table.';
comment on column content_service.table_views.name is 'What administrators call it.';
comment on column content_service.table_views.query is 'Filters and order, as in a request of the table interface.';
comment on column content_service.table_views.columns is 'The shown columns in order; null for all.';
comment on column content_service.table_views.saved_by is 'The administrator who saved it; null where nobody signs in.';
comment on column content_service.table_views.saved_at is 'When it was saved last.';

-- A view stays its author's, so that nobody finds it changed or gone. One whose author is no administrator any more is everybody's.
create function content_service.may_change_view(view content_service.table_views, user_id bigint) returns boolean
language sql stable set search_path = '' as $$
  select view.saved_by is null or view.saved_by is not distinct from may_change_view.user_id or not exists (
    select from auth.users as account join auth.user_roles using (user_id)
    where account.user_id = view.saved_by and not auth.is_disabled(account)
      and pg_has_role(to_regrole(quote_ident(user_roles.role)), 'admin', 'usage')
  );
$$;
comment on function content_service.may_change_view is 'Whether this administrator may change and delete the view; a null user is one who has not signed in.';
