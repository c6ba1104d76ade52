-- email_confirmed_at follows verified_email. Statements written for Supabase set email_confirmed_at alone: verified_email follows that.
create or replace function auth.tg_users__follow_changes() returns trigger as $$
begin
  if NEW.email_confirmed_at is not null and (TG_OP = 'INSERT' or OLD.email_confirmed_at is null) then
    NEW.verified_email := NEW.email;
  end if;
  NEW.email_confirmed_at := case
    when lower(NEW.verified_email) = lower(NEW.email) then coalesce(NEW.email_confirmed_at, clock_timestamp())
  end;
  NEW.updated_at := clock_timestamp();
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function auth.tg_users__follow_changes is
  'Before insert or update: keeps email_confirmed_at and updated_at.';
