-- 'simple', not 'english': articles are written in any language, and stemming for one spoils the others. Postgres limits a document to
-- 1 MB (54000); 1,000 characters of the title and 200,000 of the content always fit. The cost is realistic, and makes the planner use
-- the index instead of parsing every article.
create or replace function private.article_document(title text, tags text[], content text) returns tsvector
language sql immutable parallel safe cost 10000
return setweight(to_tsvector('pg_catalog.simple', left(title, 1000)), 'A')
  || setweight(to_tsvector('pg_catalog.simple', array_to_string(tags, ' ')), 'B')
  || setweight(to_tsvector('pg_catalog.simple', left(content, 200000)), 'C');

grant execute on function private.article_document to anon, authenticated, service_role;
comment on function private.article_document is
  'The text of an article for full-text search: title before tags before content.';
