// Every process that init answers for, whatever became of its parents: all others of the pid namespace in an
// enclosure, all descendants outside of one.
#pragma once

namespace ccbox::init {

class population {
 public:
  explicit population(bool confined) : confined_(confined) {}

  // One pass: those that exist at this moment.
  void signal_all(int number) const;

 private:
  bool confined_;
};

}  // namespace ccbox::init
