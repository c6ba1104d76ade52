-- Declared immutable for the index. array_to_string is only stable, because of types whose text depends on settings;
-- the text of a text does not.
create or replace function private.article_text(title text, tags text[], content text) returns text
language sql immutable parallel safe cost 1000
return title || e'\n' || array_to_string(tags, e'\n') || e'\n' || content;

grant execute on function private.article_text to anon, authenticated, service_role;
comment on function private.article_text is 'All of an article that search finds parts of words in.';
