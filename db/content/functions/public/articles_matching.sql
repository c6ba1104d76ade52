-- A standard body, because callers have no USAGE on schema private; it selects whole rows ("select article"), because article.* would
-- be frozen to today's columns.
create or replace function public.articles_matching(keyword text) returns setof public.articles
language sql stable parallel safe rows 20
begin atomic
  select article
  from public.articles as article
  where btrim(keyword) <> '' and article.id in (
    select found.id from private.articles_containing(keyword) as found (id)
  );
end;

grant execute on function public.articles_matching to anon, authenticated, service_role;
comment on function public.articles_matching is
  e'@behavior -*\n@filter\nArticles with the keyword in title, tags or content.';
