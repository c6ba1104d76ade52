-- Declared immutable for the index. array_to_string is only stable, because the text of some types depends on settings; that of text
-- does not.
create or replace function private.article_text(title text, tags text[], content text) returns text
language sql immutable parallel safe cost 1000
return title || e'\n' || array_to_string(tags, e'\n') || e'\n' || content;

grant execute on function private.article_text to anon, authenticated, service_role;
comment on function private.article_text is 'The text of an article for substring search.';
