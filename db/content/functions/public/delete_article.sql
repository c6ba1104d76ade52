create or replace function public.delete_article(id bigint) returns boolean as $$
begin
  if auth.uid() is null and row_security_active('public.articles') then
    raise exception 'Sign in to delete an article' using errcode = 'LOGIN';
  end if;

  delete from public.articles as article where article.id = delete_article.id;
  if found then
    return true;
  end if;

  if exists (select from public.articles as article where article.id = delete_article.id) then
    raise exception 'Only its author may delete this article' using errcode = 'NOPER';
  end if;
  return false;
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.delete_article to anon, authenticated, service_role;
comment on function public.delete_article is
  'Delete an article of yours and its comments. False when there is no such article.';
