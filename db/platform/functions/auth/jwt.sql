-- A setting that was used before on the connection is '' afterwards, not null: hence nullif.
create or replace function auth.jwt() returns jsonb
language sql stable parallel safe
return nullif(current_setting('request.jwt.claims', true), '')::jsonb;

grant execute on function auth.jwt to anon, authenticated, service_role;
comment on function auth.jwt is 'The claims of the caller''s token; null without a token.';
