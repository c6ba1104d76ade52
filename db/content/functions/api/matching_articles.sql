-- In schema api, as api.translated_title. It runs as the caller, so policies hide articles here too.
create or replace function api.matching_articles(keyword text) returns setof bigint
language sql stable parallel safe rows 20
begin atomic
  select article.id
  from public.articles as article
  where btrim(keyword) <> '' and article.id in (
    select found.id from private.articles_containing(keyword) as found (id)
  );
end;

grant execute on function api.matching_articles to anon, authenticated, service_role;
comment on function api.matching_articles is 'The ids of the articles with the keyword that the caller may read.';
