-- What pg_graphql's functions answer on Supabase where the extension is off. GraphQL itself is at /graphql.
create schema graphql;
create schema graphql_public;
grant usage on schema graphql, graphql_public to postgres, anon, authenticated, service_role;
comment on schema graphql_public is 'The entry point of pg_graphql, which answers that it is not enabled.';
create function graphql.resolve(query text, variables jsonb default '{}', "operationName" text default null, extensions jsonb default null)
returns jsonb language sql stable set search_path = '' as $$
  select jsonb_build_object('errors', jsonb_build_array(jsonb_build_object('message', 'pg_graphql extension is not enabled. GraphQL is served at /graphql.')));
$$;
create function graphql_public.graphql("operationName" text default null, query text default null, variables jsonb default null, extensions jsonb default null)
returns jsonb language sql stable set search_path = '' as $$
  select graphql.resolve(query, coalesce(variables, '{}'), "operationName", extensions);
$$;
-- What migrations call; GraphQL follows the database by itself.
create function graphql.rebuild_schema() returns void language sql stable begin atomic end;
create function graphql.get_schema_version() returns integer language sql stable return 1;
create function graphql.comment_directive(comment_ text) returns jsonb language sql immutable set search_path = '' as $$
  select coalesce(substring(comment_ from '@graphql\((.*)\)')::jsonb, '{}');
$$;
