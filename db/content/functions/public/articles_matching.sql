create or replace function public.articles_matching(keyword text) returns setof public.articles as $$
  select article.*
  from public.articles as article
  where article.id in (select found.id from api.matching_articles(keyword) as found (id));
$$ language sql stable parallel safe rows 20 set search_path = '';
grant execute on function public.articles_matching to anon, authenticated, service_role;
comment on function public.articles_matching is
  e'@behavior -*\n@filter\nArticles with the keyword in title, tags or content.';
