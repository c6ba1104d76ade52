-- In schema api, on which callers have USAGE: public.articles_title has a string body, whose names Postgres resolves as the caller.
create or replace function api.translated_title(article_id bigint, language text) returns text
language sql stable parallel safe
begin atomic
  select translation.title
  from public.article_translations as translation
  where translation.article_id = translated_title.article_id and translation.language = translated_title.language;
end;

grant execute on function api.translated_title to anon, authenticated, service_role;
comment on function api.translated_title is 'The title in that language; null without a translation.';
