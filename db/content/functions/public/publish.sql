-- In the conventional interface an action is a function that takes the row; GraphQL has publishArticle instead.
create or replace function public.publish(article public.articles) returns public.articles as $$
  select public.publish_article(article.id);
$$ language sql volatile set search_path = '';
grant execute on function public.publish to anon, authenticated, service_role;
comment on function public.publish is e'@behavior -*\nGive this article the status PUBLISHED.';
