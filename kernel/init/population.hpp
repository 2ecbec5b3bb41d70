// Every process that init answers for, whatever became of its parents: all others of the pid namespace in an
// enclosure, all descendants outside of one.
#pragma once

namespace ccbox::init {

class population {
 public:
  explicit population(bool confined) : confined_(confined) {}

  // One pass: those that exist at this moment.
  void signal_all(int number) const;
  // SIGKILL, one pass. Repeated while children are reaped it gets everybody, since orphans become init's
  // children; it is quick enough for one that forks and ends all the time.
  void kill_all() const;

 private:
  bool confined_;
};

}  // namespace ccbox::init
